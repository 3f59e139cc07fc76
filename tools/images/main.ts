import { imageNames, provideImage } from "./provide-image.ts";

const [socketPath, ...names] = process.argv.slice(2);
if (socketPath === undefined || names.length === 0) {
  console.error(`usage: npm run images -- SOCKET-OF-THE-ENGINE NAME...   (${imageNames.join(", ")})`);
  process.exit(2);
}
for (const name of names) console.log(await provideImage(socketPath, name));
