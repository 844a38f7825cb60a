"""What the sum of many people's randomised reports gives away of one of them."""
