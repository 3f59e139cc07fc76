import { fileURLToPath } from "node:url";
import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import type { InlineConfig } from "vite";

/**
 * Returns the settings that bundle the dashboard for current browsers, with nothing inlined that the Content-Security-Policy would block.
 */
export function bundleSettings(): InlineConfig {
  return {
    root: fileURLToPath(new URL("../dashboard/", import.meta.url)),
    configFile: false,
    envDir: false,
    logLevel: "warn",
    cacheDir: fileURLToPath(new URL("../../node_modules/.cache/berth-vite", import.meta.url)),
    resolve: { alias: { zod: fileURLToPath(new URL("z.ts", import.meta.url)) } },
    plugins: [react(), tailwind()],
    build: { target: "es2023", assetsInlineLimit: 0, chunkSizeWarningLimit: 600, modulePreload: { polyfill: false } },
  };
}
