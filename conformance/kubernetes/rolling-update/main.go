// Command rolling replaces the pods of a Service one by one, until SIGTERM, as the controllers of
// Deployments and EndpointSlices and a node do: a new pod is ready, then an old one is told to end.
// From then on its endpoint is terminating, and the pod serves until its preStop hook is over. It
// then refuses connections, finishes its requests, and its endpoint goes.
package main

import (
	"context"
	"flag"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"sync/atomic"
	"syscall"
	"time"

	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

const (
	namespace = "rolling"
	service   = "shop"
	// Pods have the addresses 10.77.0.11 to 10.77.0.39, one after the other.
	firstAddress = 11
	addresses    = 29
	port         = 3000
	// How long a request takes.
	work = 20 * time.Millisecond
)

type pod struct {
	address       string
	server        *http.Server
	isTerminating bool
	requests      atomic.Int64
}

// rollout is the state of the Service.
type rollout struct {
	client kubernetes.Interface
	pods   []*pod
	begun  int
	served int64
}

func main() {
	settings := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "how the API server is reached")
	replicas := flag.Int("replicas", 4, "pods of the Service")
	preStop := flag.Duration("pre-stop", time.Second, "how long a pod serves once it is told to end")
	flag.Parse()

	configuration, err := clientcmd.BuildConfigFromFlags("", *settings)
	check(err)
	client, err := kubernetes.NewForConfig(configuration)
	check(err)
	shop := &rollout{client: client}
	for range *replicas {
		shop.start()
	}
	shop.tell()
	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	replaced := 0
	for ; ended.Err() == nil; replaced++ {
		shop.replaceOldest(*preStop)
	}
	for _, one := range shop.pods {
		shop.served += one.requests.Load()
	}
	fmt.Printf("%d pods were replaced, %d requests served\n", replaced, shop.served)
}

// start runs a pod, which is ready once it listens.
func (r *rollout) start() {
	one := &pod{address: fmt.Sprintf("10.77.0.%d", firstAddress+r.begun%addresses)}
	r.begun++
	listener, err := net.Listen("tcp", net.JoinHostPort(one.address, strconv.Itoa(port)))
	check(err)
	one.server = &http.Server{Handler: http.HandlerFunc(one.answer)}
	go func() { _ = one.server.Serve(listener) }()
	r.pods = append(r.pods, one)
}

func (p *pod) answer(answer http.ResponseWriter, _ *http.Request) {
	p.requests.Add(1)
	time.Sleep(work)
	fmt.Fprintln(answer, p.address)
}

func (r *rollout) replaceOldest(preStop time.Duration) {
	r.start()
	r.tell()
	oldest := r.pods[0]
	oldest.isTerminating = true
	r.tell()
	time.Sleep(preStop)
	ended, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	check(oldest.server.Shutdown(ended))
	r.served += oldest.requests.Load()
	r.pods = r.pods[1:]
	r.tell()
}

// tell writes the endpoints of all pods.
func (r *rollout) tell() {
	slice := &discovery.EndpointSlice{
		ObjectMeta: meta.ObjectMeta{
			Name: service, Namespace: namespace, Labels: map[string]string{discovery.LabelServiceName: service},
		},
		AddressType: discovery.AddressTypeIPv4,
		Ports:       []discovery.EndpointPort{{Name: of("http"), Port: of(int32(port)), Protocol: of(core.ProtocolTCP)}},
	}
	for _, one := range r.pods {
		slice.Endpoints = append(slice.Endpoints, discovery.Endpoint{
			Addresses: []string{one.address},
			Conditions: discovery.EndpointConditions{
				Ready: of(!one.isTerminating), Serving: of(true), Terminating: of(one.isTerminating),
			},
		})
	}
	slices := r.client.DiscoveryV1().EndpointSlices(namespace)
	background := context.Background()
	if _, err := slices.Get(background, service, meta.GetOptions{}); err == nil {
		_, err = slices.Update(background, slice, meta.UpdateOptions{})
		check(err)
		return
	}
	_, err := slices.Create(background, slice, meta.CreateOptions{})
	check(err)
}

func of[T any](value T) *T { return &value }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
