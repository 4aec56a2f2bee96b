"""The CloudFormation template of sbench's stack, and the functions that it makes."""
