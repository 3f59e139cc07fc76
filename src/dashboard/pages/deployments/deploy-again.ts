export const deployAgain = (slug: string) =>
  ({
    row: "deployments.create",
    label: "Deploy again",
    input: { params: { slug }, body: {} },
    text: "The newest commit is built and started beside the present deployment, checked for health, then switched to.",
  }) as const;
