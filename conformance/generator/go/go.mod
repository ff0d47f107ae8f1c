module counted

go 1.21
