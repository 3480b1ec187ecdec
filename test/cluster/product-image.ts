/**
 * Builds the project's own image, as its Dockerfile says, with what a machine without a registry has: a base assembled from
 * the installed Node.js, and the installed packages in place of the stage that would download them.
 */
import { join } from "node:path";
import { buildImage, buildNodeBaseImage } from "./image.ts";
import { repositoryDir } from "./paths.ts";

/** Where the image is found once it is loaded; both charts' values take it in these two parts. */
export const PRODUCT_IMAGE = { repository: "localhost/durable-timer", tag: "dev" } as const;

/** Builds it from the working tree and returns the path of its archive. */
export async function buildProductImage(): Promise<string> {
  const baseImage = await buildNodeBaseImage();
  return await buildImage({
    dockerfile: join(repositoryDir, "Dockerfile"),
    tag: `${PRODUCT_IMAGE.repository}:${PRODUCT_IMAGE.tag}`,
    buildArgs: { BASE_IMAGE: baseImage, BUILD_IMAGE: baseImage },
    contexts: { packages: repositoryDir },
  });
}
