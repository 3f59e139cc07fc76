module example.com/ahoy

go 1.19
