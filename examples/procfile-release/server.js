import { readFile } from "node:fs/promises";
import { createServer } from "node:http";
import { join } from "node:path";

const file = join(process.env.STORAGE_DIR ?? "/tmp", "schema.json");

const server = createServer(async (request, response) => {
  const schema = await readFile(file, "utf8").catch(() => "none yet");
  response.end(`Ahoy! The schema is ${schema}\n`);
});
server.listen(process.env.PORT, process.env.HOST);
process.once("SIGTERM", () => server.close());
