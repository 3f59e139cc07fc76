import { useNavigate } from "@tanstack/react-router";
import { limits } from "../../../contract/limits.ts";
import type { Project } from "../../data/api.ts";
import { textOf, TextField } from "../../ui/field.tsx";
import { ActionDialog } from "../../ui/action-dialog.tsx";
import { DialogButton } from "../../ui/button.tsx";
import { Section } from "../../ui/page.tsx";
import { Ago, Fact, Mono } from "../../ui/text.tsx";

/** Shows the project's name and its earlier names, and lets the user rename it. */
export function ProjectName({ project }: { readonly project: Project }) {
  const { slug, earlier_names: earlier } = project;
  return (
    <Section
      title="Name"
      lead="It is part of the project's address, of its repository's path and of every command."
      actions={
        <DialogButton row="projects.rename" dialog={<RenameDialog project={project} />}>
          Rename
        </DialogButton>
      }
    >
      <dl className="grid gap-x-6 gap-y-4 rounded-md border border-line p-4 sm:grid-cols-2">
        <Fact label="Name">
          <Mono>{slug}</Mono>
        </Fact>
        <Fact label="Earlier names">
          {earlier.length === 0 && <span className="text-faint">none</span>}
          {earlier.map((each) => (
            <span key={each.slug} className="block">
              <Mono>{each.slug}</Mono> <span className="text-muted">leads here, until</span> <Ago at={each.until} />
            </span>
          ))}
        </Fact>
      </dl>
    </Section>
  );
}

export function RenameDialog({ project }: { readonly project: Project }) {
  const { slug, url, git } = project;
  const navigate = useNavigate();
  const stays = `leads to the new one for ${limits.earlier_name_days} days`;
  return (
    <ActionDialog
      row="projects.rename"
      title={`Rename ${slug}`}
      submit="Rename"
      input={(form) => ({ params: { slug }, body: { slug: textOf(form, "slug").trim() } })}
      onDone={(renamed) => void navigate({ to: "/projects/$slug/settings", params: { slug: renamed.slug } })}
    >
      <TextField
        name="slug"
        label="New name"
        hint="Lower-case letters, digits and hyphens."
        required
        mono
        autoComplete="off"
        defaultValue={slug}
      />
      <dl className="grid gap-3 rounded-md border border-line p-4">
        <Fact label="Address">
          <Mono className="wrap-anywhere">{url}</Mono> <span className="text-muted">{stays}</span>
        </Fact>
        <Fact label="Repository">
          <Mono className="wrap-anywhere">{git.https}</Mono> <span className="text-muted">{stays}</span>
        </Fact>
        <Fact label="Hostnames of your own, database, variables, cron jobs">untouched</Fact>
        <Fact label="BERTH_URL and BERTH_PROJECT">new from the next start of the application on</Fact>
      </dl>
    </ActionDialog>
  );
}
