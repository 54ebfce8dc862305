module hangartugs

go 1.21
