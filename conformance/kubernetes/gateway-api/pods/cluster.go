package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	discovery "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
)

const (
	nodeName        = "node"
	namespacePrefix = "gateway-"
)

// cluster does the work of the controllers of Deployments, EndpointSlices and namespaces, and that
// of a node.
type cluster struct {
	client      kubernetes.Interface
	lock        sync.Mutex // of pods
	pods        map[string]*pod
	lastAddress int
}

func (c *cluster) find(name string) *pod {
	c.lock.Lock()
	defer c.lock.Unlock()
	return c.pods[name]
}

func (c *cluster) keep(name string, one *pod) {
	c.lock.Lock()
	defer c.lock.Unlock()
	if one == nil {
		delete(c.pods, name)
	} else {
		c.pods[name] = one
	}
}

// register makes the node known: the API server asks it for logs.
func (c *cluster) register(ended context.Context, address string) error {
	node := &core.Node{ObjectMeta: meta.ObjectMeta{Name: nodeName}}
	node, err := c.client.CoreV1().Nodes().Create(ended, node, meta.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		node, err = c.client.CoreV1().Nodes().Get(ended, nodeName, meta.GetOptions{})
	}
	if err != nil {
		return err
	}
	node.Status.Addresses = []core.NodeAddress{{Type: core.NodeInternalIP, Address: address}}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = logPort
	_, err = c.client.CoreV1().Nodes().UpdateStatus(ended, node, meta.UpdateOptions{})
	return err
}

func (c *cluster) reconcile(ended context.Context) error {
	namespaces, err := c.client.CoreV1().Namespaces().List(ended, meta.ListOptions{})
	if err != nil {
		return err
	}
	wanted := map[string]bool{}
	var failures []error
	for _, namespace := range namespaces.Items {
		if !strings.HasPrefix(namespace.Name, namespacePrefix) {
			continue
		}
		if namespace.DeletionTimestamp != nil {
			failures = append(failures, c.finalize(ended, &namespace))
			continue
		}
		failures = append(failures, c.runDeployments(ended, namespace.Name, wanted))
		failures = append(failures, c.writeEndpoints(ended, namespace.Name))
	}
	for name, pod := range c.pods {
		if !wanted[name] {
			failures = append(failures, c.remove(ended, name, pod))
		}
	}
	return errors.Join(failures...)
}

func (c *cluster) finalize(ended context.Context, namespace *core.Namespace) error {
	namespace.Spec.Finalizers = nil
	_, err := c.client.CoreV1().Namespaces().Finalize(ended, namespace, meta.UpdateOptions{})
	return err
}

func (c *cluster) runDeployments(ended context.Context, namespace string, wanted map[string]bool) error {
	deployments, err := c.client.AppsV1().Deployments(namespace).List(ended, meta.ListOptions{})
	if err != nil {
		return err
	}
	for _, deployment := range deployments.Items {
		replicas := int32(1)
		if deployment.Spec.Replicas != nil {
			replicas = *deployment.Spec.Replicas
		}
		for number := range replicas {
			name := fmt.Sprintf("%s-replicas-%d", deployment.Name, number)
			wanted[namespace+"/"+name] = true
			if c.pods[namespace+"/"+name] != nil {
				continue
			}
			if err := c.start(ended, &deployment, name); err != nil {
				return fmt.Errorf("%s/%s: %w", namespace, name, err)
			}
		}
		if deployment.Status.AvailableReplicas != replicas {
			deployment.Status = apps.DeploymentStatus{
				ObservedGeneration: deployment.Generation, Replicas: replicas,
				ReadyReplicas: replicas, UpdatedReplicas: replicas, AvailableReplicas: replicas,
			}
			_, err := c.client.AppsV1().Deployments(namespace).UpdateStatus(ended, &deployment, meta.UpdateOptions{})
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// start runs the servers of a pod, and tells the API server of it when they are listening.
func (c *cluster) start(ended context.Context, deployment *apps.Deployment, name string) error {
	template := deployment.Spec.Template
	certificates, err := c.certificates(ended, deployment.Namespace, &template.Spec)
	if err != nil {
		return err
	}
	address := fmt.Sprintf("10.78.%d.%d", c.lastAddress/200, c.lastAddress%200+1)
	output, err := exec.CommandContext(ended, "ip", "addr", "replace", address+"/32", "dev", "lo").CombinedOutput()
	if err != nil {
		return fmt.Errorf("ip addr: %s: %w", output, err)
	}
	c.lastAddress++
	started, err := startPod(address, name, deployment.Namespace, &template.Spec, certificates)
	if err != nil {
		return err
	}
	if err := c.tell(ended, deployment, name, address); err != nil {
		started.close()
		return err
	}
	started.labels = template.Labels
	c.keep(deployment.Namespace+"/"+name, started)
	return nil
}

// tell writes the object of the pod, which is ready at once.
func (c *cluster) tell(ended context.Context, deployment *apps.Deployment, name, address string) error {
	pods := c.client.CoreV1().Pods(deployment.Namespace)
	now := int64(0)
	_ = pods.Delete(ended, name, meta.DeleteOptions{GracePeriodSeconds: &now})
	specification := deployment.Spec.Template.Spec
	specification.NodeName = nodeName
	created, err := pods.Create(ended, &core.Pod{
		ObjectMeta: meta.ObjectMeta{Name: name, Labels: deployment.Spec.Template.Labels},
		Spec:       specification,
	}, meta.CreateOptions{})
	if err != nil {
		return err
	}
	created.Status = core.PodStatus{
		Phase: core.PodRunning, PodIP: address, PodIPs: []core.PodIP{{IP: address}},
		Conditions: []core.PodCondition{
			{Type: core.PodReady, Status: core.ConditionTrue},
			{Type: core.ContainersReady, Status: core.ConditionTrue},
		},
	}
	for _, container := range specification.Containers {
		created.Status.ContainerStatuses = append(created.Status.ContainerStatuses, core.ContainerStatus{
			Name: container.Name, Image: container.Image, Ready: true,
			State: core.ContainerState{Running: &core.ContainerStateRunning{StartedAt: meta.Now()}},
		})
	}
	_, err = pods.UpdateStatus(ended, created, meta.UpdateOptions{})
	return err
}

func (c *cluster) remove(ended context.Context, name string, removed *pod) error {
	removed.close()
	c.keep(name, nil)
	now := int64(0)
	namespace, own, _ := strings.Cut(name, "/")
	err := c.client.CoreV1().Pods(namespace).Delete(ended, own, meta.DeleteOptions{GracePeriodSeconds: &now})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// certificates are the files of the first Secret and of the first ConfigMap of a pod.
func (c *cluster) certificates(ended context.Context, namespace string, pod *core.PodSpec) (files, error) {
	var found files
	for _, volume := range pod.Volumes {
		if volume.Secret != nil {
			secret, err := c.client.CoreV1().Secrets(namespace).Get(ended, volume.Secret.SecretName, meta.GetOptions{})
			if err != nil {
				return found, err
			}
			found.certificate, found.key = secret.Data["tls.crt"], secret.Data["tls.key"]
		}
		if volume.ConfigMap != nil {
			configMap, err := c.client.CoreV1().ConfigMaps(namespace).Get(ended, volume.ConfigMap.Name, meta.GetOptions{})
			if err != nil {
				return found, err
			}
			found.clientRoots = []byte(configMap.Data["ca.crt"])
		}
	}
	return found, nil
}

func (c *cluster) writeEndpoints(ended context.Context, namespace string) error {
	services, err := c.client.CoreV1().Services(namespace).List(ended, meta.ListOptions{})
	if err != nil {
		return err
	}
	known, err := c.client.DiscoveryV1().EndpointSlices(namespace).List(ended, meta.ListOptions{})
	if err != nil {
		return err
	}
	existing := map[string]*discovery.EndpointSlice{}
	for _, slice := range known.Items {
		existing[slice.Name] = &slice
	}
	api := c.client.DiscoveryV1().EndpointSlices(namespace)
	wanted := map[string]bool{}
	for _, service := range services.Items {
		if len(service.Spec.Selector) == 0 {
			continue
		}
		slice := c.endpoints(&service)
		wanted[slice.Name] = true
		old := existing[slice.Name]
		switch {
		case old == nil:
			_, err = api.Create(ended, slice, meta.CreateOptions{})
		case !equality.Semantic.DeepEqual(old.Endpoints, slice.Endpoints) ||
			!equality.Semantic.DeepEqual(old.Ports, slice.Ports):
			old.Endpoints, old.Ports = slice.Endpoints, slice.Ports
			_, err = api.Update(ended, old, meta.UpdateOptions{})
		}
		if err != nil {
			return err
		}
	}
	for name := range existing {
		if strings.HasSuffix(name, sliceSuffix) && !wanted[name] {
			if err := api.Delete(ended, name, meta.DeleteOptions{}); err != nil {
				return err
			}
		}
	}
	return nil
}

const sliceSuffix = "-of-pods"

func (c *cluster) endpoints(service *core.Service) *discovery.EndpointSlice {
	slice := &discovery.EndpointSlice{
		ObjectMeta: meta.ObjectMeta{
			Name:   service.Name + sliceSuffix,
			Labels: map[string]string{discovery.LabelServiceName: service.Name},
		},
		AddressType: discovery.AddressTypeIPv4,
	}
	for _, port := range service.Spec.Ports {
		number := port.TargetPort.IntVal
		if number == 0 {
			number = port.Port
		}
		slice.Ports = append(slice.Ports, discovery.EndpointPort{
			Name: &port.Name, Protocol: &port.Protocol, Port: &number, AppProtocol: port.AppProtocol,
		})
	}
	selector := labels.SelectorFromSet(service.Spec.Selector)
	isReady := true
	for _, pod := range c.sorted(service.Namespace) {
		if selector.Matches(labels.Set(pod.labels)) {
			slice.Endpoints = append(slice.Endpoints, discovery.Endpoint{
				Addresses: []string{pod.address}, Conditions: discovery.EndpointConditions{Ready: &isReady},
			})
		}
	}
	return slice
}
