import type { Answer } from "../../../contract/client.ts";
import { Tag } from "../../ui/text.tsx";

type Token = Answer<"tokens.list">["api_tokens"][number];

/** Shows a token's role, and what limits it. */
export function TokenRights({ of: token }: { readonly of: Token }) {
  const { role, platform_admin: admin, approval_mode: approval, projects, scopes } = token;
  return (
    <span className="inline-flex gap-1">
      <Tag>{admin ? "operator" : role}</Tag>
      {approval && <Tag>approval mode</Tag>}
      {scopes.every((scope) => scope.endsWith(":read")) && <Tag>read only</Tag>}
      {projects !== null && (
        <span title={projects.join(", ")}>
          <Tag>{projects.length === 1 ? projects[0] : `${projects.length} projects`}</Tag>
        </span>
      )}
    </span>
  );
}
