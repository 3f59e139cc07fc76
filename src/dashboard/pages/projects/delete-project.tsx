import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import type { z } from "zod";
import type { dryRun } from "../../../contract/dry-run.ts";
import { route } from "../../../contract/routes.ts";
import { useClient } from "../../data/api.ts";
import { bytes, count, plural } from "../../data/format.ts";
import type { Project } from "../../data/project.ts";
import { ConfirmAction } from "../../ui/action-dialog.tsx";
import { Ago, Fact } from "../../ui/text.tsx";
import { View } from "../../ui/view.tsx";

type DryRun = z.output<typeof dryRun>;

/** Deletes a project, or purges a deleted one. Shows the effects first, from a dry run. */
export function DeleteProject({ project, onClose }: { readonly project: Project; readonly onClose: () => void }) {
  const client = useClient();
  const navigate = useNavigate();
  const { slug } = project;
  const purge = project.state === "deleted";
  const query = purge ? { purge: true } : {};
  const reach = useQuery({
    queryKey: ["projects.delete", slug, purge, "dry_run"],
    queryFn: () =>
      client.send(route("projects.delete"), {
        params: { slug },
        query: { ...query, dry_run: true },
      }) as Promise<DryRun>,
  });
  return (
    <ConfirmAction
      row="projects.delete"
      title={purge ? `Delete ${slug} for good` : `Delete ${slug}`}
      submit={purge ? "Delete for good" : "Delete"}
      typed={slug}
      input={{ params: { slug }, query }}
      onDone={() => (purge ? void navigate({ to: "/" }) : onClose())}
      onClose={onClose}
    >
      <View of={reach}>{(data) => <Reach data={data} />}</View>
    </ConfirmAction>
  );
}

function Reach({ data: { affects, needs_approval: needsApproval } }: { readonly data: DryRun }) {
  return (
    <>
      {affects !== null && (
        <dl className="grid grid-cols-2 gap-4 rounded-md border border-line p-4 text-text">
          <Fact label="Hostnames">
            {affects.hostnames.length === 0 ? "none of its own" : affects.hostnames.join(", ")}
          </Fact>
          <Fact label="Requests in the last hour">
            {affects.requests_last_hour === null ? "not known" : count(affects.requests_last_hour)}
          </Fact>
          <Fact label="Database">
            {affects.database === null
              ? "none"
              : `about ${plural(affects.database.estimated_rows, "row")} in ${plural(affects.database.tables, "table")}, ${bytes(affects.database.size_bytes)}`}
          </Fact>
          <Fact label="Last verified backup">
            {affects.last_verified_backup_at === null ? "none" : <Ago at={affects.last_verified_backup_at} />}
          </Fact>
        </dl>
      )}
      {needsApproval && <p className="text-sm text-warn">Your token is in approval mode: a person is asked first.</p>}
    </>
  );
}
