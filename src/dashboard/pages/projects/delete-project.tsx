import { useNavigate } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useDryRun, type DryRun, type Project } from "../../data/api.ts";
import { bytes, count, day, plural } from "../../data/format.ts";
import { ConfirmAction } from "../../ui/action-dialog.tsx";
import { Ago, Fact } from "../../ui/text.tsx";
import { View } from "../../ui/page.tsx";

/** Deletes a project, or purges a deleted one. Shows the effects first, from a dry run. */
export function DeleteProject({ project }: { readonly project: Project }) {
  const navigate = useNavigate();
  const { slug } = project;
  const purge = project.state === "deleted";
  const query = purge ? { purge: true } : {};
  const reach = useDryRun("projects.delete", { params: { slug }, query });
  return (
    <ConfirmAction
      row="projects.delete"
      title={purge ? `Delete ${slug} for good` : `Delete ${slug}`}
      submit={purge ? "Delete for good" : "Delete"}
      typed={slug}
      input={{ params: { slug }, query }}
      onDone={() => purge && void navigate({ to: "/" })}
    >
      <View of={reach}>
        {(data) => (
          <div className="flex flex-col gap-4">
            <Reach data={data} />
            {purge ? (
              <GoneForGood slug={slug} />
            ) : (
              <Kept slug={slug} until={data.would_change?.detail["undelete_until"]} />
            )}
            {data.needs_approval && (
              <p className="text-warn">Your token is in approval mode: a person is asked first.</p>
            )}
          </div>
        )}
      </View>
    </ConfirmAction>
  );
}

function Kept({ slug, until }: { readonly slug: string; readonly until: unknown }) {
  return (
    <Outcome>
      <Fact label="Stops at once">The application, its cron jobs and its hostnames.</Fact>
      <Fact label="Kept">
        Code, deployments, database, storage, backups, domains and variables. The name {slug} stays taken.
      </Fact>
      <Fact label="Undo">
        {typeof until === "string" ? (
          <>
            <b className="font-medium">Undelete</b> brings everything back until {day(until)}. Then it is deleted for
            good; one verified backup of the database stays.
          </>
        ) : (
          <>
            <b className="font-medium">Undelete</b> brings everything back, without a time limit. Only{" "}
            <b className="font-medium">Delete for good</b> ends that.
          </>
        )}
      </Fact>
    </Outcome>
  );
}

function GoneForGood({ slug }: { readonly slug: string }) {
  return (
    <Outcome>
      <Fact label="Gone for good">
        Code, deployments, database, storage, logs, variables, domains and all other backups. This cannot be undone.
      </Fact>
      <Fact label="Kept">
        One backup of the database, made and verified before anything goes. It has no end; any project of the
        organization can restore it by its id.
      </Fact>
      <Fact label="Free again">The name {slug} and its hostnames.</Fact>
    </Outcome>
  );
}

function Outcome({ children }: { readonly children: ReactNode }) {
  return <dl className="flex flex-col gap-3 text-text">{children}</dl>;
}

function Reach({ data: { affects } }: { readonly data: DryRun }) {
  if (affects === null) return null;
  return (
    <dl className="grid grid-cols-2 gap-4 rounded-md border border-line p-4 text-text">
      <Fact wide label="Hostnames">
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
  );
}
