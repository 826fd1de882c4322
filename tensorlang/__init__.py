"""tensorlang: a tensor language in which no schedule can produce a wrong result."""
