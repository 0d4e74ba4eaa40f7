"""RUN: operating-system processes and what is known about them."""
