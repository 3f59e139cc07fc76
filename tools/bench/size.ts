/** Returns sizes that the command line may set: `npm run bench -- edge-haproxy hosts=1,10000`. */
export function benchSizes(name: string, usual: readonly number[]): readonly number[] {
  const given = process.argv.find((argument) => argument.startsWith(`${name}=`))?.slice(name.length + 1);
  const sizes = given === undefined ? usual : given.split(",").map(Number);
  if (!sizes.every((size) => Number.isInteger(size) && size > 0))
    throw new Error(`${name} takes whole numbers above 0, not "${given}".`);
  return sizes;
}

/** Like `benchSizes`, for a single number: `npm run bench -- growth projects=200 running=20`. */
export function benchSize(name: string, usual: number): number {
  return benchSizes(name, [usual])[0] as number;
}
