import { Link, useLocation } from "@tanstack/react-router";
import { useEffect, type ReactNode } from "react";
import { useProject, useSlug, type Project } from "../../data/api.ts";
import { ActionButton } from "../../ui/action-button.tsx";
import { DialogButton, Copied } from "../../ui/button.tsx";
import { Page, Section, View } from "../../ui/page.tsx";
import { DiskUse } from "../disk/disk-use.tsx";
import { Followed } from "../follow/followed.tsx";
import { Runtime } from "../platform/runtime.tsx";
import { DeleteProject } from "./delete-project.tsx";
import { Maintenance } from "./maintenance.tsx";
import { ProjectName } from "./project-name.tsx";
import { AgentSettings, BuildSettings, NetworkSettings, PreviewSettings, RuntimeSettings } from "./settings-forms.tsx";
import { SourceSettings } from "./source-settings.tsx";
import { undelete } from "./undelete.ts";

interface Part {
  readonly id: string;
  readonly title: string;
  readonly content: ReactNode;
}

export function SettingsPage() {
  const project = useProject();
  return (
    <View of={project}>
      {(data) => (
        <Page title="Settings">
          <Parts parts={partsOf(data)} />
        </Page>
      )}
    </View>
  );
}

function partsOf(project: Project): readonly Part[] {
  const { slug } = project;
  const danger = { id: "danger", title: "Danger zone", content: <Danger project={project} /> };
  if (project.state !== "active") return [danger];
  const parts: readonly (Part | false)[] = [
    {
      id: "general",
      title: "General",
      content: (
        <>
          <ProjectName project={project} />
          <Repository project={project} />
          <Followed project={project} />
        </>
      ),
    },
    {
      id: "build",
      title: "Build",
      content: (
        <>
          <BuildSettings project={project} />
          <SourceSettings project={project} />
        </>
      ),
    },
    {
      id: "runtime",
      title: "Runtime",
      content: (
        <>
          <RuntimeSettings project={project} />
          <Runtime slug={slug} />
        </>
      ),
    },
    {
      id: "network",
      title: "Network",
      content: (
        <>
          <NetworkSettings project={project} />
          <Maintenance project={project} />
        </>
      ),
    },
    { id: "data", title: "Data", content: <DiskUse slug={slug} /> },
    project.preview === null && {
      id: "previews",
      title: "Previews",
      content: <PreviewSettings project={project} />,
    },
    project.preview === null && { id: "agents", title: "Agents", content: <AgentSettings project={project} /> },
    danger,
  ];
  return parts.filter((part) => part !== false);
}

/** Scrolls to the part that the address names, and again while what loads above moves it, until the person does anything. */
function useShownPart() {
  const id = useLocation({ select: ({ hash }) => hash });
  useEffect(() => {
    const part = document.getElementById(id);
    const all = part?.parentElement ?? null;
    if (part === null || all === null) return;
    const growth = new ResizeObserver(() => part.scrollIntoView());
    growth.observe(all);
    const stop = () => growth.disconnect();
    for (const event of ["wheel", "touchmove", "keydown", "pointerdown"]) addEventListener(event, stop, { once: true });
    return stop;
  }, [id]);
}

function Parts({ parts }: { readonly parts: readonly Part[] }) {
  const slug = useSlug();
  useShownPart();
  return (
    <div className="grid gap-x-10 gap-y-5 lg:grid-cols-[9rem_minmax(0,1fr)]">
      <nav aria-label="Parts of the settings" className="self-start lg:sticky lg:top-36">
        <ul className="flex flex-wrap gap-x-1 lg:flex-col">
          {parts.map(({ id, title }) => (
            <li key={id}>
              <Link
                to="/projects/$slug/settings"
                params={{ slug }}
                hash={id}
                activeOptions={{ includeHash: true }}
                className="target flex h-8 items-center rounded-md px-2.5 text-sm text-muted hover:bg-hover hover:text-text data-[status=active]:bg-selected data-[status=active]:text-text"
              >
                {title}
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <div className="flex min-w-0 flex-col gap-8">
        {parts.map(({ id, content }) => (
          <div key={id} id={id} className="flex scroll-mt-16 md:scroll-mt-36 flex-col gap-5">
            {content}
          </div>
        ))}
      </div>
    </div>
  );
}

function Repository({ project: { git } }: { readonly project: Project }) {
  return (
    <Section title="Repository">
      <ul className="-mt-1.5 flex flex-col">
        {[git.https, git.ssh].map((url) => (
          <li key={url} className="text-muted">
            <Copied text={url} label="Copy the address of the repository" />
          </li>
        ))}
      </ul>
    </Section>
  );
}

function Danger({ project }: { readonly project: Project }) {
  const isDeleted = project.state === "deleted";
  return (
    <Section title="Danger zone">
      <div className="divide-y divide-line rounded-md border border-bad/40">
        {isDeleted && (
          <Row title="Undelete" text={undelete(project.slug).text}>
            <ActionButton {...undelete(project.slug)} />
          </Row>
        )}
        <Row
          title={isDeleted ? "Delete for good" : "Delete this project"}
          text={
            isDeleted
              ? "Keeps one verified backup of the database and removes everything else."
              : "It stops serving at once. Everything is kept, and Undelete brings it back."
          }
        >
          <DialogButton look="danger" row="projects.delete" dialog={<DeleteProject project={project} />}>
            {isDeleted ? "Delete for good" : "Delete"}
          </DialogButton>
        </Row>
      </div>
    </Section>
  );
}

function Row({
  title,
  text,
  children,
}: {
  readonly title: string;
  readonly text: string;
  readonly children: ReactNode;
}) {
  return (
    <div className="flex flex-wrap items-center justify-between gap-3 p-4">
      <div className="min-w-0">
        <p className="font-medium">{title}</p>
        <p className="max-w-[70ch] text-sm text-muted">{text}</p>
      </div>
      {children}
    </div>
  );
}
