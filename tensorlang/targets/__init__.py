"""Facts about machines that code is compiled for."""
