import { resolve } from "node:path";
import { suite } from "node:test";
import { pathToFileURL } from "node:url";

// Runs the test files that are named as arguments in this one process, one after the other. A suite of its own keeps the hooks of a file
// to its tests.
for (const file of process.argv.slice(2)) {
  await suite(file, async () => {
    await import(pathToFileURL(resolve(file)).href);
  });
}
