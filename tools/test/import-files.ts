import { resolve } from "node:path";
import { suite } from "node:test";
import { pathToFileURL } from "node:url";

// Runs the given test files in this process, one after the other. Each becomes a suite, so that its hooks apply only to its own tests.
for (const file of process.argv.slice(2)) {
  await suite(file, async () => {
    await import(pathToFileURL(resolve(file)).href);
  });
}
