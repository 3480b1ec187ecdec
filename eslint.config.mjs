// Lint rules. The size limits and the bans are those of CONTRIBUTING.md; which rooms are pure comes from the rooms table.

import eslint from "@eslint/js";
import { defineConfig, globalIgnores } from "eslint/config";
import tseslint from "typescript-eslint";
import { PURE_ROOMS } from "./scripts/rooms.ts";

const pureFiles = PURE_ROOMS.map((room) => `src/${room}/**/*.ts`);

/** Counts code only, so that comments are never the reason to split a file. */
const codeLines = (max) => ["error", { max, skipBlankLines: true, skipComments: true }];

const sizes = ({ lines, functionLines, params }) => ({
  // "modified" counts a switch as one branch: a total switch over a union is the clearest form there is, whatever its length.
  complexity: ["error", { max: 10, variant: "modified" }],
  "max-depth": ["error", 3],
  "max-params": ["error", params],
  "max-lines-per-function": codeLines(functionLines),
  "max-lines": codeLines(lines),
});

const syntaxEverywhere = [
  { selector: "ExportAllDeclaration", message: "Name what is exported; `export *` hides it." },
  { selector: "ExportDefaultDeclaration", message: "Export by name; a default export has a different name in every importer." },
  { selector: "TSEnumDeclaration", message: "Use a union of literals; Node strips types and cannot run an enum." },
];

const noReExport = {
  selector: "ExportNamedDeclaration[source]",
  message: "Import from the file that defines it; only client/index.ts re-exports.",
};

const pureSyntax = [
  { selector: ":function[async=true]", message: "A pure room is synchronous: return data, and let a caller wait." },
  { selector: "AwaitExpression, ForOfStatement[await=true]", message: "A pure room is synchronous: return data, and let a caller wait." },
  { selector: "NewExpression[callee.name='Date'][arguments.length=0]", message: "A pure room takes the time as a parameter (nowMs)." },
  { selector: "CallExpression[callee.name='Date']", message: "A pure room takes the time as a parameter (nowMs)." },
];

const pureProperties = [
  { object: "Date", property: "now", message: "A pure room takes the time as a parameter (nowMs)." },
  { object: "performance", property: "now", message: "A pure room takes the time as a parameter (nowMs)." },
  { object: "Math", property: "random", message: "A pure room takes its randomness as a parameter." },
];

/** The compiler hides these from most pure rooms; kube/manifests sees them through the types that it imports. */
const platformNames = [
  ...["process", "Buffer", "console", "fetch", "crypto", "performance", "require", "globalThis"],
  ...["setTimeout", "setInterval", "setImmediate", "queueMicrotask", "structuredClone"],
].map((name) => ({ name, message: "A pure room uses no platform: take what it needs as a parameter." }));

const processNames = ["env", "exit", "exitCode", "on", "once", "argv"];
const processMessage = "Only src/bin meets the process: pass the value in.";
const noProcess = processNames.map((property) => ({ object: "process", property, message: processMessage }));

export default defineConfig(
  globalIgnores(["dist/", ".cache/", ".durable-timer/", "coverage/", "test/cluster/bin/", "types/"]),
  {
    files: ["**/*.ts"],
    extends: [eslint.configs.recommended, tseslint.configs.recommendedTypeChecked],
    languageOptions: { parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname } },
    linterOptions: { reportUnusedDisableDirectives: "error" },
    rules: {
      ...sizes({ lines: 400, functionLines: 70, params: 3 }),
      "no-restricted-syntax": ["error", ...syntaxEverywhere, noReExport],
      eqeqeq: "error",
      "no-console": "off",
      "no-param-reassign": "error",
      "prefer-const": "error",
      "@typescript-eslint/consistent-type-imports": ["error", { fixStyle: "separate-type-imports" }],
      "@typescript-eslint/no-import-type-side-effects": "error",
      "@typescript-eslint/consistent-type-exports": "error",
      "@typescript-eslint/no-explicit-any": "error",
      "@typescript-eslint/no-floating-promises": ["error", { ignoreVoid: false }],
      "@typescript-eslint/no-misused-promises": "error",
      "@typescript-eslint/no-unused-vars": ["error", { argsIgnorePattern: "^_", caughtErrors: "all", ignoreRestSiblings: true }],
      "@typescript-eslint/switch-exhaustiveness-check": [
        "error",
        { allowDefaultCaseForExhaustiveSwitch: true, considerDefaultExhaustiveForUnions: false, requireDefaultForNonUnion: true },
      ],
      // A function is async because its type says so, not because its first version happens to await something.
      "@typescript-eslint/require-await": "off",
    },
  },
  {
    files: ["src/**/*.ts"],
    ignores: ["src/bin/**"],
    rules: {
      "no-restricted-properties": ["error", ...noProcess],
      "no-restricted-imports": [
        "error",
        { paths: ["process", "node:process"].map((name) => ({ name, importNames: ["default", ...processNames], message: processMessage })) },
      ],
    },
  },
  { files: ["src/**/*.ts"], ignores: ["src/bin/**", "src/cli/**"], rules: { "no-console": "error" } },
  {
    files: pureFiles,
    rules: {
      "no-restricted-syntax": ["error", ...syntaxEverywhere, noReExport, ...pureSyntax],
      "no-restricted-properties": ["error", ...pureProperties],
      "no-restricted-globals": ["error", ...platformNames],
    },
  },
  { files: ["src/client/index.ts"], rules: { "no-restricted-syntax": ["error", ...syntaxEverywhere] } },
  {
    files: ["test/**/*.ts", "bench/**/*.ts"],
    rules: {
      // A table of cases may be long, and may hand its columns to the test one by one.
      ...sizes({ lines: 800, functionLines: 200, params: 6 }),
      "max-params": "off",
      "no-restricted-properties": ["error", { object: "vi", property: "mock", message: "Use a fake behind the port; a mocked module hides what changed." }],
    },
  },
  // Configuration files are read by tools that want a default export.
  { files: ["*.config.ts"], rules: { "no-restricted-syntax": "off" } },
  {
    files: ["**/*.mjs"],
    extends: [eslint.configs.recommended],
    languageOptions: { globals: Object.fromEntries(["console", "process", "setTimeout", "setInterval", "clearInterval"].map((name) => [name, "readonly"])) },
    rules: sizes({ lines: 400, functionLines: 70, params: 3 }),
  },
);
