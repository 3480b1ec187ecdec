// Writes small source trees into a temporary folder, so that rules can be tried on code that must not exist in the repository.

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";

/** File contents by path. */
export type Tree = Readonly<Record<string, string>>;

/** Runs `use` on a folder that holds the tree, with empty stand-ins for the named packages, and removes it afterwards. */
export async function withTree<Result>(tree: Tree, packages: readonly string[], use: (dir: string) => Promise<Result> | Result): Promise<Result> {
  const dir = mkdtempSync(join(tmpdir(), "planted-"));
  try {
    const dependencies = Object.fromEntries(packages.map((name) => [name, "1.0.0"]));
    writeTree(dir, { "package.json": JSON.stringify({ type: "module", dependencies }), ...tree });
    for (const name of packages) {
      const manifest = JSON.stringify({ name, version: "1.0.0", main: "index.js" });
      writeTree(join(dir, "node_modules", name), { "package.json": manifest, "index.js": "" });
    }
    return await use(dir);
  } finally {
    rmSync(dir, { recursive: true, force: true });
  }
}

function writeTree(dir: string, tree: Tree): void {
  for (const [path, text] of Object.entries(tree)) {
    mkdirSync(dirname(join(dir, path)), { recursive: true });
    writeFileSync(join(dir, path), text);
  }
}
