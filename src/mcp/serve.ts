import { createMcpHandler } from "@modelcontextprotocol/server";
import { createMcpServer, type McpOptions } from "./server.ts";

/** Answers one message of a client, of any version of the protocol; nothing is kept between messages. `body` is the parsed message. */
export function serveMcp(options: McpOptions, request: Request, body: unknown): Promise<Response> {
  return createMcpHandler(() => createMcpServer(options)).fetch(request, { parsedBody: body });
}

export { skill } from "./skill.ts";
