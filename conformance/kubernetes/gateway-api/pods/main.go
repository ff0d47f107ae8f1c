// Command pods stands in for the nodes of a cluster: it runs what the conformance suite of Gateway
// API expects of its Deployments. Every pod is a set of servers at an address of its own.
package main

import (
	"context"
	"flag"
	"log"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

func main() {
	settings := flag.String("kubeconfig", os.Getenv("KUBECONFIG"), "how the API server is reached")
	node := flag.String("node", "10.77.0.1", "the address of the node, which serves logs")
	flag.Parse()

	configuration, err := clientcmd.BuildConfigFromFlags("", *settings)
	check(err)
	configuration.QPS, configuration.Burst = 200, 200
	client, err := kubernetes.NewForConfig(configuration)
	check(err)
	ended, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()

	nodes := &cluster{client: client, pods: map[string]*pod{}}
	check(nodes.register(ended, *node))
	go nodes.serveLogs(*node)
	for ended.Err() == nil {
		if err := nodes.reconcile(ended); err != nil && ended.Err() == nil {
			log.Print(err)
		}
		select {
		case <-ended.Done():
		case <-time.After(300 * time.Millisecond):
		}
	}
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
