# Container images, with docker, podman or buildah where one works, else put together by hand.
.PHONY: images
images: all ## container images: operator and task, as archives under build/images
	@tools/images

images-%: all
	@tools/images $*
