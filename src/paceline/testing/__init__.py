"""Tools for tests of programs that use Paceline, and of Paceline itself."""
