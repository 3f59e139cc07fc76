import { Link } from "@tanstack/react-router";
import { useCall } from "../../data/api.ts";
import { count } from "../../data/format.ts";
import { useProject, type Project } from "../../data/project.ts";
import { attentionTexts, type OverviewProject } from "../../frame/stand.ts";
import { CopyButton } from "../../ui/copy.tsx";
import { Page, Section } from "../../ui/page.tsx";
import { State, Status } from "../../ui/status.tsx";
import { Ago, Fact, Mono, Plain } from "../../ui/text.tsx";
import { View } from "../../ui/view.tsx";
import { Processes } from "../processes/processes.tsx";
import { DiskUse } from "../disk/disk-use.tsx";
import { FirstDeployment } from "./first-deployment.tsx";
import { Running } from "./running.tsx";

/** A project at a glance; one without a deployment shows how to make the first. */
export function ProjectPage() {
  const project = useProject();
  return (
    <View of={project}>
      {(data) => (
        <Page title={data.name}>
          {data.state === "deleted" && (
            <p className="text-muted">This project is deleted; the settings bring it back.</p>
          )}
          <Running slug={data.slug} />
          {data.active_deployment === null && data.state === "active" && <FirstDeployment project={data} />}
          {data.active_deployment !== null && <Facts project={data} />}
          {data.active_deployment !== null && data.state === "active" && <Processes slug={data.slug} />}
          {data.state === "active" && (
            <Section title="Disk">
              <DiskUse slug={data.slug} />
            </Section>
          )}
          <Section title="Repository">
            <ul className="flex flex-col gap-1">
              <Remote url={data.git.https} />
              <Remote url={data.git.ssh} />
            </ul>
          </Section>
        </Page>
      )}
    </View>
  );
}

function Facts({ project }: { readonly project: Project }) {
  const { slug, active_deployment: active } = project;
  const { data } = useCall("overview.get", {});
  const seen = data?.projects.find(({ id }) => id === project.id);
  return (
    <>
      {seen?.attention.map((each) => (
        <Status key={each} tone="warn">
          {attentionTexts[each]}
        </Status>
      ))}
      <dl className="grid grid-cols-2 gap-x-6 gap-y-5 rounded-md border border-line p-5 lg:grid-cols-4">
        <Fact label="Deployment">
          <Link to="/projects/$slug/deployments" params={{ slug }} className="hover:text-accent">
            #{active?.number} <Mono>{active?.commit?.slice(0, 7) ?? ""}</Mono>
          </Link>
        </Fact>
        <Fact label="Live since">
          {active?.activated_at === null || active === null ? "–" : <Ago at={active.activated_at} />}
        </Fact>
        <Fact label="Replicas">
          {seen === undefined ? project.replicas : `${seen.replicas.ready} of ${seen.replicas.wanted} ready`}
        </Fact>
        <Fact label="Requests, last hour">
          {seen === undefined ? "–" : count(seen.last_hour.requests)}
          {seen !== undefined && seen.last_hour.errors > 0 && (
            <span className="text-bad"> · {count(seen.last_hour.errors)} errors</span>
          )}
        </Fact>
        <Fact label="Address">
          <a href={project.url} target="_blank" rel="noreferrer" className="text-accent hover:underline">
            <Mono className="break-all">{project.url.replace(/^https?:\/\//, "")}</Mono>
          </a>
        </Fact>
        <Fact label="Database">
          {(seen?.database ?? null) === null ? (
            <span className="text-faint">none</span>
          ) : (
            <State of={seen?.database ?? ""} />
          )}
        </Fact>
        <Fact label="Last backup">
          <LastBackup of={seen?.last_backup ?? null} />
        </Fact>
        <Fact label="Name">
          <Plain>{project.name}</Plain>
        </Fact>
      </dl>
    </>
  );
}

function LastBackup({ of }: { readonly of: OverviewProject["last_backup"] }) {
  if (of === null) return <span className="text-faint">none</span>;
  return (
    <>
      <State of={of.status} /> <Ago at={of.at} />
    </>
  );
}

function Remote({ url }: { readonly url: string }) {
  return (
    <li className="flex items-center gap-1">
      <Mono className="min-w-0 truncate text-muted">{url}</Mono>
      <CopyButton text={url} label="Copy the address of the repository" />
    </li>
  );
}
