import type { PackageJson } from "./package-json.ts";
import type { BuiltFiles, Start } from "./plan.ts";

// Matches `start` scripts that run a development server. Those are not for visitors; the build output is served instead.
const developmentServer = new RegExp(
  [
    "^(?:npx +)?(?:cross-env +)?(?:[A-Z_]+=\\S* +)*(?:npx +)?(?:",
    "(?:react-scripts|react-app-rewired|craco|docusaurus) start|vite(?: (?:dev|serve|preview))?(?= +-|$)|ng serve|ng s\\b|vue-cli-service serve|",
    "webpack serve|webpack-dev-server|webpack .*--watch|parcel\\b(?! build)|astro (?:dev|preview)|gatsby (?:develop|serve)|next dev|nuxi? dev|nuxt dev|",
    "vitepress (?:dev|serve)|rsbuild (?:dev|preview)|snowpack dev|eleventy .*--serve|live-server|browser-sync|nest start|nodemon\\b|ts-node-dev|tsx watch|node --watch)",
  ].join(""),
);

// Server files that frameworks build: Nuxt and Nitro, Astro's Node adapter.
const serverOutputs = [".output/server/index.mjs", "dist/server/entry.mjs"];
const siteFolders = [
  "dist",
  "build",
  "out",
  "_site",
  "www",
  ".output/public",
  "dist/client",
  ".vitepress/dist",
  "docs/.vitepress/dist",
  ".vuepress/dist",
  "docs/.vuepress/dist",
  "storybook-static",
  "public",
];

/** Returns how to start a Node application without a Procfile command; null if nothing indicates it. */
export function nodeStart(manifest: PackageJson, files: BuiltFiles): Start | null {
  return (
    startScript(manifest) ??
    frameworkServer(manifest, files) ??
    serverFile(files) ??
    (manifest.scripts["build"] === undefined ? null : site(files)) ??
    mainFile(manifest, files) ??
    site(files) ??
    watcher(manifest)
  );
}

/** Returns whether the `start` script is a development server, which is not run here. */
export function isDevelopmentServer(script: string): boolean {
  return developmentServer.test(script.trim());
}

/** Returns the `start` script, unless it is a development server. */
export function startScript({ scripts }: PackageJson): Start | null {
  const name = ["start", "start:prod", "start:production"].find((each) => isForVisitors(scripts[each]));
  if (name === undefined) return null;
  const script = scripts[name] as string;
  const before = scripts[`pre${name}`];
  // Run it without npm, which would use memory for as long as the application runs and would swallow signals.
  const command = before === undefined ? script : `${before} && ${script}`;
  return { how: "command", command, because: `the \`${name}\` script of package.json` };
}

/** Returns a `start` script that restarts on file changes. It serves visitors too, so it is the last resort. */
function watcher({ scripts }: PackageJson): Start | null {
  const script = scripts["start"] ?? "";
  return /\b(?:nodemon|node --watch|tsx watch)\b/.test(script)
    ? { how: "command", command: script, because: "the `start` script of package.json" }
    : null;
}

function isForVisitors(script: string | undefined): boolean {
  return script !== undefined && script.trim() !== "" && !isDevelopmentServer(script);
}

function frameworkServer(manifest: PackageJson, files: BuiltFiles): Start | null {
  const found = serverOutputs.find((path) => files.has(path));
  if (found) return node(found, "the server that the build created");
  const uses = (name: string) =>
    manifest.dependencies[name] !== undefined || manifest.devDependencies[name] !== undefined;
  const usesSvelteServer = uses("@sveltejs/adapter-node") || uses("@sveltejs/adapter-auto");
  if (usesSvelteServer && files.has("build/index.js"))
    return node("build/index.js", "the server that the build created");
  if (uses("next") && files.has(".next/BUILD_ID") && !files.has("out/index.html")) {
    return { how: "command", command: "next start -p $PORT", because: "the Next.js build" };
  }
  return null;
}

function serverFile(files: BuiltFiles): Start | null {
  const found = ["server.js", "server.mjs", "server.cjs"].find((path) => files.has(path));
  return found ? node(found, found) : null;
}

function mainFile(manifest: PackageJson, files: BuiltFiles): Start | null {
  const main = manifest.main?.replace(/^\.\//, "") ?? null;
  const candidates = [...(main === null ? [] : [main, `${main}.js`]), "index.js", "index.mjs", "app.js"];
  const found = candidates.find(
    (path) => /^[\w./@-]+$/.test(path) && !path.split("/").includes("..") && files.has(path),
  );
  return found ? node(found, found === main ? "`main` of package.json" : found) : null;
}

function site(files: BuiltFiles): Start | null {
  // Angular writes dist/<project>/browser.
  const nested = files.folders("dist").flatMap((name) => [`dist/${name}/browser`, `dist/${name}`]);
  const folder = [...siteFolders, ...nested].find((path) => files.has(`${path}/index.html`));
  if (folder === undefined) return null;
  // Only a single-page application serves its one page for every path; with several pages, a missing one is a 404.
  const fallback = files.pages(folder) === 1 ? "index" : "none";
  return { how: "static", folder, fallback, because: `${folder}/index.html` };
}

function node(path: string, because: string): Start {
  return { how: "command", command: `node ${path}`, because };
}
