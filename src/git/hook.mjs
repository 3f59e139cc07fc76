// The pre-receive hook: asks Berth over a unix socket and prints what it answers. Plain JavaScript with no imports but node's,
// because it starts once per push and stripping types would cost 40 ms each time.
// It fails closed: only a complete answer whose trailer says "accepted" ends it with 0.
import { createRequire } from "node:module";

// An `import` of node:http looks at all of its exports, and with them loads a client that nobody wants: 35 ms.
const { request } = createRequire(import.meta.url)("node:http");

process.exitCode = 1;
const { env } = process;

async function readStdin() {
  const chunks = [];
  for await (const chunk of process.stdin) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

function question(refs) {
  return {
    refs,
    quarantine: env.GIT_QUARANTINE_PATH && {
      GIT_OBJECT_DIRECTORY: env.GIT_OBJECT_DIRECTORY,
      GIT_ALTERNATE_OBJECT_DIRECTORIES: env.GIT_ALTERNATE_OBJECT_DIRECTORIES,
      GIT_QUARANTINE_PATH: env.GIT_QUARANTINE_PATH,
    },
  };
}

function lost() {
  console.log(" !     Berth is restarting; nothing was changed, push again");
}

function ask(body) {
  const call = request({ socketPath: env.BERTH_HOOK_SOCKET, path: `/pushes/${env.BERTH_PUSH_ID}`, method: "POST" });
  call.once("error", lost);
  call.once("response", (answer) => {
    call.off("error", lost);
    call.on("error", () => {});
    answer.on("data", (chunk) => process.stdout.write(chunk));
    answer.on("error", () => {});
    answer.once("close", () => {
      if (!answer.complete || answer.trailers["x-decision"] === undefined) lost();
      else if (answer.trailers["x-decision"] === "accepted") process.exitCode = 0;
    });
  });
  call.end(body);
}

ask(JSON.stringify(question(await readStdin())));
