"""What Spark will do with a join: the sizes it believes in, the operator it picks, and where a hint corrects it."""
