import type { Answer } from "../../../contract/client.ts";
import { Tag } from "../../ui/text.tsx";

export type Member = Answer<"people.list">["members"][number];

/** Shows a role, and the projects to which it is limited. */
export function Rights({
  of: { role, platform_admin: admin, projects },
}: {
  readonly of: Pick<Member, "role" | "platform_admin" | "projects">;
}) {
  return (
    <span className="inline-flex gap-1 max-sm:flex-col max-sm:items-start">
      <Tag>{admin ? "operator" : role}</Tag>
      {projects !== null && (
        <span className="max-w-24 truncate sm:max-w-60" title={projects.join(", ")}>
          <Tag>{projects.length === 1 ? projects[0] : `${projects.length} projects`}</Tag>
        </span>
      )}
    </span>
  );
}
