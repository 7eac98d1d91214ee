# Container images, with docker, podman or buildah if one works, else without an engine.
.PHONY: images
images: all ## container images: operator and task, as archives under build/images
	@tools/images

images-%: all
	@tools/images $*
