import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useAction } from "../../data/api.ts";
import { textOf } from "../../data/text-of.ts";
import { FormDialog } from "../../ui/dialog.tsx";
import { Field, Input } from "../../ui/field.tsx";
import { fieldProblem } from "../../ui/problem.tsx";

export function CreateProject({ onClose }: { readonly onClose: () => void }) {
  const create = useAction("projects.create");
  const navigate = useNavigate();
  const [slug, setSlug] = useState("");
  const submit = (form: FormData) =>
    create.mutate(
      { body: { slug, name: textOf(form, "name") || slug } },
      { onSuccess: () => void navigate({ to: "/projects/$slug", params: { slug } }) },
    );
  return (
    <FormDialog
      title="New project"
      submit="Create"
      busy={create.isPending}
      error={create.error}
      onSubmit={submit}
      onClose={onClose}
    >
      <Field
        label="Slug"
        hint="In its address and in commands: lower case letters, digits, hyphens."
        error={fieldProblem(create.error, "slug")}
      >
        {(ids) => (
          <Input
            {...ids}
            autoFocus
            required
            mono
            maxLength={40}
            value={slug}
            onChange={(event) => setSlug(event.target.value.toLowerCase().replaceAll(/[^a-z0-9-]+/g, "-"))}
          />
        )}
      </Field>
      <Field label="Name" hint="For people. The slug, if left empty." error={fieldProblem(create.error, "name")}>
        {(ids) => <Input {...ids} name="name" maxLength={100} placeholder={slug} />}
      </Field>
    </FormDialog>
  );
}
