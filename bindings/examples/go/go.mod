module quipu/example

go 1.19
