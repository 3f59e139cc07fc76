import type { FastifyInstance } from "fastify";
import type { Scope } from "../contract/access.ts";
import { refusal } from "../contract/access.ts";
import { Refused } from "../features/context.ts";
import type { Authenticator } from "./authenticator.ts";

/** A text for the operator's tools, outside the API, such as `/metrics`: only for platform admins, with their token as bearer. */
export interface OperatorText {
  readonly path: `/${string}`;
  readonly scope: Scope;
  readonly contentType: string;
  readonly read: () => Promise<string>;
}

export function addOperatorText(
  app: FastifyInstance,
  text: OperatorText,
  authenticator: Pick<Authenticator, "authenticate">,
): void {
  app.get(text.path, async (request, reply) => {
    const token = /^Bearer +(\S+)$/i.exec(request.headers.authorization ?? "")?.[1];
    const found = token === undefined ? undefined : await authenticator.authenticate(token);
    if (found === undefined) throw new Refused("unauthorized");
    if (found.suspended) throw new Refused("org_suspended");
    const refused = refusal(found.caller, { access: "operator", scope: text.scope });
    if (refused !== undefined) throw new Refused(refused);
    return reply
      .header("cache-control", "no-store")
      .type(text.contentType)
      .send(await text.read());
  });
}
