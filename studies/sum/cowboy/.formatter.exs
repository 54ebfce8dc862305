[inputs: ["*.exs", "lib/**/*.ex"], line_length: 120]
