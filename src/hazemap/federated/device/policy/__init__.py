"""What a device agrees to: the policy it ships with, its person's own rules, and what a question asks in words."""
