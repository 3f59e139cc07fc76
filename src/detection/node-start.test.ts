import assert from "node:assert/strict";
import { test } from "node:test";
import { isDevelopmentServer, nodeStart } from "./node-start.ts";
import { parsePackageJson } from "./package-json.ts";
import type { BuiltFiles } from "./plan.ts";

const files = (...paths: string[]): BuiltFiles => ({
  has: (path) => paths.includes(path),
  mayExist: (path) => paths.includes(path),
  pages: (folder) => paths.filter((path) => path.startsWith(`${folder}/`) && path.endsWith(".html")).length,
  files: () => [],
  folders: (folder) => [
    ...new Set(paths.filter((path) => path.startsWith(`${folder}/`)).map((path) => path.split("/")[1] as string)),
  ],
});
const start = (manifest: object, ...paths: string[]) => {
  const found = nodeStart(parsePackageJson(JSON.stringify(manifest)), files(...paths));
  if (found === null) return null;
  return found.how === "command" ? found.command : `${found.folder} ${found.fallback}`;
};

test("the start script comes first, with prestart before it", () => {
  assert.equal(start({ scripts: { start: "node a.js" } }, "server.js", "dist/index.html"), "node a.js");
  assert.equal(start({ scripts: { start: "node a.js", prestart: "echo hi" } }), "echo hi && node a.js");
});

test("a development server is not how visitors are served", () => {
  for (const script of [
    "react-scripts start",
    "vite",
    "vite --host",
    "vite preview",
    "cross-env PORT=1 ng serve",
    "next dev",
    "PORT=3 parcel index.html",
    "astro dev",
  ]) {
    assert.ok(isDevelopmentServer(script), script);
  }
  for (const script of [
    "node server.js",
    "next start",
    "vite-node server.ts",
    "gatsby-server",
    "fastify start app.js",
    "parcel build",
    "remix-serve build",
  ]) {
    assert.ok(!isDevelopmentServer(script), script);
  }
  assert.equal(
    start({ scripts: { start: "react-scripts start", build: "react-scripts build" } }, "build/index.html"),
    "build index",
  );
});

test("start:prod takes the place of a start script for developers", () => {
  assert.equal(start({ scripts: { start: "nest start", "start:prod": "node dist/main" } }), "node dist/main");
  assert.equal(start({ scripts: { start: "nodemon index.js" } }, "index.js"), "node index.js");
  assert.equal(start({ scripts: { start: "nodemon src/run.js" } }), "nodemon src/run.js");
});

test("without a start script: a server the build made, server.js, the built site, main, index.js, a plain site", () => {
  assert.equal(
    start({ scripts: { build: "nuxt build" } }, ".output/server/index.mjs", ".output/public/index.html"),
    "node .output/server/index.mjs",
  );
  assert.equal(
    start({ dependencies: { next: "1" }, scripts: { build: "next build" } }, ".next/BUILD_ID"),
    "next start -p $PORT",
  );
  assert.equal(start({}, "server.js", "index.js"), "node server.js");
  assert.equal(start({ main: "index.js", scripts: { build: "webpack" } }, "index.js", "dist/index.html"), "dist index");
  assert.equal(start({ main: "./lib/run" }, "lib/run.js"), "node lib/run.js");
  assert.equal(start({}, "index.js", "public/index.html"), "node index.js");
  assert.equal(start({}, "public/index.html"), "public index");
  assert.equal(start({ scripts: { build: "ng build" } }, "dist/shop/browser/index.html"), "dist/shop/browser index");
});

test("a site with a page for what is missing keeps it", () => {
  assert.equal(start({ scripts: { build: "x" } }, "dist/index.html", "dist/404.html"), "dist none");
});

test("main is never a shell command, nor outside", () => {
  assert.equal(start({ main: "a.js; rm -rf /" }, "a.js; rm -rf /"), null);
  assert.equal(start({ main: "../a.js" }, "../a.js"), null);
});
