

inPlaceholder*
dtype0
E
callPartitionedCallin*

fR
f*
Tout
2*
Tin
2
 
useIdentitycall:1*
T0m
k

f
x
y
innerIdentityx*
T0"
r_Retval*
T0*
index"
yinner:output:0