import tseslint from "typescript-eslint";

// Text of a record must never become markup: the page has no other way to make elements than `h` of src/dom.ts.
const MARKUP = ["innerHTML", "outerHTML", "insertAdjacentHTML", "srcdoc", "write", "writeln"];

export default tseslint.config(
  { ignores: ["build/", "node_modules/"] },
  {
    files: ["src/**/*.ts", "tests/**/*.ts"],
    extends: [tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    rules: {
      eqeqeq: "error",
      "no-eval": "error",
      "no-console": "error",
      "no-restricted-properties": ["error", ...MARKUP.map((property) => ({ property }))],
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "@typescript-eslint/no-floating-promises": ["error", { allowForKnownSafeCalls: [{ from: "package", name: ["test", "describe"], package: "node:test" }] }],
    },
  },
);
