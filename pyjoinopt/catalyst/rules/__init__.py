"""Catalyst's logical rules, one a file, named as Catalyst names them; `registry` lists all of them."""
