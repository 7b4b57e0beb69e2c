module sluice.example/malloc

go 1.19
