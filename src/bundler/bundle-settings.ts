import { fileURLToPath } from "node:url";
import tailwind from "@tailwindcss/vite";
import react from "@vitejs/plugin-react";
import type { InlineConfig } from "vite";
import { contractTables } from "./contract-tables.ts";

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
    plugins: [contractTables(), react(), tailwind()],
    build: {
      target: "es2023",
      assetsInlineLimit: 0,
      chunkSizeWarningLimit: 600,
      modulePreload: { polyfill: false },
      rolldownOptions: {
        // Schemas and rows of the contract that no page uses.
        treeshake: { manualPureFunctions: ["z", "row"] },
        output: { codeSplitting: { groups } },
      },
    },
  };
}

// Browsers fetch six files at a time, so the code that many pages share is one file instead of twenty.
const groups = [
  {
    name: "packages",
    test: /node_modules\/(?:react|react-dom|scheduler|use-sync-external-store|@tanstack\/(?!react-virtual|virtual-core)[^/]+)\//,
  },
  { name: "shared", test: /\/src\/(?:dashboard|contract|bundler)\/|\/lucide-react\//, minShareCount: 4 },
];
