import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { call, useAction, useCall, useClient, useMe, useWhyNot } from "../../data/api.ts";
import { slugOf } from "../../data/format.ts";
import { textOf, Checkbox, SelectField, TextField } from "../../ui/field.tsx";
import { FormDialog } from "../../ui/action-dialog.tsx";
import { useDialog } from "../../ui/dialogs.tsx";
import { FollowFields, followIn } from "../follow/follow-fields.tsx";
import { NextSteps } from "../follow/next-steps.tsx";
import { useDeployTemplate, type Template } from "../templates/use-deploy-template.ts";

const [code, repository, image] = ["code", "repository", "image"] as const;

/** Asks from where a project begins and for its name; then shows the project, or the build that deploys it. */
export function CreateProject() {
  const { data } = useCall("templates.list", {});
  const [typed, setSlug] = useState<string>();
  const [from, setFrom] = useState<string>(code);
  const [source, setSource] = useState("");
  const template = data?.templates.find(({ name }) => name === from);
  const slug = typed ?? template?.name ?? slugOfSource(source);
  const { begin, show, follow } = useBeginning(slug);
  const why = useWhyNot("projects.create");
  const hasContainers = useMe().platform.runtime !== "process";
  const whyNoDatabase = useWhyNot("database.create");
  if (follow.data !== undefined) return <NextSteps made={follow.data} onClose={() => void show()} />;
  return (
    <FormDialog title="New project" submit="Create" why={why} onSubmit={(form) => begin(form, template)}>
      <SelectField
        name="from"
        label="Begin with"
        value={from}
        onChange={(event) => (setFrom(event.target.value), setSource(""))}
        options={[
          [code, "My code: a git push, or a folder from here"],
          [repository, "A repository on GitHub, GitLab or elsewhere"],
          ...(hasContainers ? [[image, "A container image"] as const] : []),
          ...(data?.templates ?? []).map(
            ({ name, title, summary }) => [name, `Template ${title}: ${summary.replace(/\.$/, "")}`] as const,
          ),
        ]}
      />
      {from === repository && <FollowFields of={null} onUrl={setSource} />}
      {from === image && (
        <TextField
          name="image"
          label="Image"
          hint="It is pulled once; the digest that it has then is what runs."
          required
          mono
          maxLength={512}
          autoComplete="off"
          placeholder="ghcr.io/acme/shop:1.4"
          onChange={(event) => setSource(event.target.value)}
        />
      )}
      <TextField
        name="slug"
        label="Slug"
        hint="In its address and in commands: lower case letters, digits, hyphens."
        required
        mono
        maxLength={40}
        value={slug}
        onChange={(event) => setSlug(event.target.value.toLowerCase().replaceAll(/[^a-z0-9-]+/g, "-"))}
      />
      <TextField
        name="name"
        label="Name"
        hint="For people. The slug, if left empty."
        maxLength={100}
        placeholder={slug}
      />
      {template === undefined && from !== repository && (
        <Checkbox
          name="database"
          label="With a PostgreSQL database, whose address is in DATABASE_URL"
          disabled={whyNoDatabase !== undefined}
          title={whyNoDatabase}
        />
      )}
    </FormDialog>
  );
}

/** Creates the project, then its database and what deploys it. What was done before a failure is not done again. */
function useBeginning(slug: string) {
  const { finish } = useDialog();
  const client = useClient();
  const navigate = useNavigate();
  const create = useAction("projects.create");
  const database = useAction("database.create");
  const follow = useAction("follow.set");
  const deploy = useAction("deployments.create");
  const deployTemplate = useDeployTemplate();
  const params = { slug };
  const showBuild = (id: string) => navigate({ to: "/projects/$slug/builds/$id", params: { slug, id } });
  /** Shows the first build if it has come, else the page that waits for it. */
  const show = async () => {
    finish();
    const { builds } = await call(client, "builds.list", { params }).catch(() => ({ builds: [] }));
    return builds[0] === undefined ? navigate({ to: "/projects/$slug", params }) : showBuild(builds[0].id);
  };
  const begin = async (form: FormData, template: Template | undefined) => {
    const name = textOf(form, "name") || slug;
    if (create.data?.slug !== slug) await create.mutateAsync({ body: { slug, name } });
    if (template !== undefined) {
      const id = await deployTemplate(slug, template);
      finish();
      return showBuild(id);
    }
    const hasDatabase = database.isSuccess && database.variables.params.slug === slug;
    if (form.has("database") && !hasDatabase) await database.mutateAsync({ params, body: {} });
    if (textOf(form, "from") === image) {
      const { build_id: id } = await deploy.mutateAsync({ params, body: { image: textOf(form, "image").trim() } });
      finish();
      return showBuild(id);
    }
    // The project's page shows the plan of what is fetched.
    if (textOf(form, "from") === repository)
      return follow.mutateAsync({ params, body: { ...followIn(form), deploy: false } });
    return show();
  };
  return { begin, show, follow };
}

/** Returns what a project may be called that begins with this repository or image: the last part of its address. */
function slugOfSource(address: string): string {
  return slugOf(
    address
      .trim()
      .replace(/(?:[@:][^/]*|\.git)?\/*$/, "")
      .split(/[/:]/)
      .at(-1) ?? "",
  );
}
