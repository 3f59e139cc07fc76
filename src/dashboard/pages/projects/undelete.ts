export const undelete = (slug: string) =>
  ({
    row: "projects.undelete",
    label: "Undelete",
    input: { params: { slug } },
    text: "Brings the project back with the deployment it had.",
  }) as const;
