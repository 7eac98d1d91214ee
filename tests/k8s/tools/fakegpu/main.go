// SPDX-License-Identifier: Apache-2.0

// fakegpu: a device plug-in that advertises COUNT nonexistent devices nvidia.com/gpu, so that scheduling and admission
// of GPU pods are real on a machine without one.  Containers get NVIDIA_VISIBLE_DEVICES with their devices, as from
// NVIDIA's own plug-in.
//
//	fakegpu KUBELET-FOLDER COUNT      (/var/lib/kubelet, wherever its --root-dir is)
package main

import (
	"context"
	"fmt"
	"log"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	plugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const name, socket = "nvidia.com/gpu", "muster-fakegpu.sock"

type server struct {
	plugin.UnimplementedDevicePluginServer
	count int
}

func (s *server) GetDevicePluginOptions(context.Context, *plugin.Empty) (*plugin.DevicePluginOptions, error) {
	return &plugin.DevicePluginOptions{}, nil
}

func (s *server) ListAndWatch(_ *plugin.Empty, out plugin.DevicePlugin_ListAndWatchServer) error {
	var devices []*plugin.Device
	for i := range s.count {
		devices = append(devices, &plugin.Device{ID: fmt.Sprintf("GPU-fake-%d", i), Health: plugin.Healthy})
	}
	if err := out.Send(&plugin.ListAndWatchResponse{Devices: devices}); err != nil {
		return err
	}
	<-out.Context().Done()
	return nil
}

func (s *server) Allocate(_ context.Context, in *plugin.AllocateRequest) (*plugin.AllocateResponse, error) {
	answer := &plugin.AllocateResponse{}
	for _, c := range in.ContainerRequests {
		answer.ContainerResponses = append(answer.ContainerResponses, &plugin.ContainerAllocateResponse{
			Envs: map[string]string{"NVIDIA_VISIBLE_DEVICES": strings.Join(c.DevicesIDs, ",")}})
	}
	return answer, nil
}

func main() {
	if len(os.Args) != 3 {
		log.Fatal("fakegpu: say: fakegpu KUBELET-FOLDER COUNT")
	}
	count, err := strconv.Atoi(os.Args[2])
	if err != nil || count < 0 || count > 64 {
		log.Fatalf("fakegpu: COUNT is between 0 and 64, not %q", os.Args[2])
	}
	folder := filepath.Join(os.Args[1], "device-plugins")
	own := filepath.Join(folder, socket)
	os.Remove(own)
	listener, err := net.Listen("unix", own)
	if err != nil {
		log.Fatalf("fakegpu: %v", err)
	}
	s := grpc.NewServer()
	plugin.RegisterDevicePluginServer(s, &server{count: count})
	go s.Serve(listener)

	kubelet, err := grpc.NewClient("unix://"+filepath.Join(folder, "kubelet.sock"),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		log.Fatalf("fakegpu: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if _, err = plugin.NewRegistrationClient(kubelet).Register(ctx, &plugin.RegisterRequest{
		Version: plugin.Version, Endpoint: socket, ResourceName: name}); err != nil {
		log.Fatalf("fakegpu: the kubelet does not take it: %v", err)
	}
	log.Printf("fakegpu: %d %s", count, name)
	select {} // until it is killed; the kubelet then reports no devices
}
