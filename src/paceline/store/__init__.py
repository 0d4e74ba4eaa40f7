"""REMEMBER: units of work over named SQL; SQL filters, guards and locks but never decides."""
