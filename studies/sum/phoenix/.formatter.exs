[import_deps: [:phoenix], inputs: ["*.exs", "{config,lib}/**/*.{ex,exs}"], line_length: 118]
