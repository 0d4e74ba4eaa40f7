"""The doors for programs: submit, wait, look, cancel, replay."""
