"""The CloudFormation template of sbench's stack, and its functions."""
