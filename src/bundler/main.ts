import { argv } from "node:process";
import { build, createServer } from "vite";
import { bundleSettings } from "./bundle-settings.ts";

/**
 * A separate program, so that Vite's memory is freed when the bundle is complete. `main.ts build FOLDER` writes the dashboard's bundle into
 * the folder. `main.ts dev [URL]` serves the dashboard with hot reload, in front of the platform at URL.
 */
const [verb, given] = argv.slice(2);

if (verb === "build" && given !== undefined) {
  const settings = bundleSettings();
  const into = { outDir: given, emptyOutDir: true, reportCompressedSize: false };
  await build({ ...settings, build: { ...settings.build, ...into } });
} else if (verb === "dev") {
  const server = await createServer({
    ...bundleSettings(),
    // printUrls() writes at this level.
    logLevel: "info",
    server: { proxy: proxyTo(given ?? "http://127.0.0.1:4000") },
  });
  await server.listen();
  server.printUrls();
} else {
  process.stderr.write("Usage: main.ts build FOLDER | dev [URL of a running platform]\n");
  process.exitCode = 64;
}

// The platform compares a page's origin with the requested host.
function proxyTo(target: string) {
  const { origin } = new URL(target);
  return Object.fromEntries(
    ["/v1", "/session", "/docs"].map((path) => [
      path,
      { target: origin, changeOrigin: true, ws: true, headers: { origin } },
    ]),
  );
}
