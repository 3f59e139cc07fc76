import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useAction, useCall } from "../../data/api.ts";
import { useWhyNot } from "../../data/me.ts";
import { textOf } from "../../data/text-of.ts";
import { FormDialog } from "../../ui/action-dialog.tsx";
import { SelectField, TextField } from "../../ui/field.tsx";
import { FollowDialog } from "../follow/follow-dialog.tsx";
import { useDeployTemplate } from "../templates/use-deploy-template.ts";

const [code, repository] = ["code", "repository"] as const;

/** Asks for a project's name and what it begins with; then shows the project, or the build that deploys it. */
export function CreateProject({ onClose }: { readonly onClose: () => void }) {
  const navigate = useNavigate();
  const create = useAction("projects.create");
  const begin = useDeployTemplate();
  const { data } = useCall("templates.list", {});
  const [slug, setSlug] = useState("");
  const [follows, setFollows] = useState(false);
  const why = useWhyNot("projects.create");
  const show = () => {
    onClose();
    void navigate({ to: "/projects/$slug", params: { slug } });
  };
  const submit = async (form: FormData) => {
    const body = { slug, name: textOf(form, "name") || slug };
    // After a failure of what follows, the project is there.
    if (create.data?.slug !== slug) await create.mutateAsync({ body });
    const from = textOf(form, "from");
    const template = data?.templates.find(({ name }) => name === from);
    if (from === repository) return setFollows(true);
    if (template === undefined) return show();
    const id = await begin.deploy(slug, template);
    onClose();
    return navigate({ to: "/projects/$slug/builds/$id", params: { slug, id } });
  };
  if (follows) return <FollowDialog slug={slug} of={null} onClose={show} />;
  return (
    <FormDialog
      title="New project"
      submit="Create"
      why={why}
      busy={create.isPending || begin.isBusy}
      error={create.error ?? begin.error}
      // The hooks show why it failed.
      onSubmit={(form) => void submit(form).catch(() => {})}
      onClose={onClose}
    >
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
      <SelectField
        name="from"
        label="Begin with"
        defaultValue={code}
        options={[
          [code, "My code: a git push, or a folder from here"],
          [repository, "A repository on GitHub, GitLab or elsewhere"],
          ...(data?.templates ?? []).map(
            ({ name, title, summary }) => [name, `Template ${title}: ${summary.replace(/\.$/, "")}`] as const,
          ),
        ]}
      />
    </FormDialog>
  );
}
